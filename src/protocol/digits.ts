// Whole numbers as the digits that JSON has for them, written into bytes: a text of them, made only to be copied, takes several
// times as long.

const ZERO = 0x30;

/** How many digits a whole number from 0 on has. */
export function digitsOf(value: number): number {
  let digits = 1;
  for (let bound = 10; value >= bound; bound *= 10) digits++;
  return digits;
}

/** Returns where the digits end. */
export function putDigits(bytes: Buffer, from: number, value: number): number {
  const to = from + digitsOf(value);
  let rest = value;
  for (let at = to - 1; at >= from; at--) {
    bytes[at] = ZERO + (rest % 10);
    rest = Math.floor(rest / 10);
  }
  return to;
}
