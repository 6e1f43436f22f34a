// How measurements are written down: cells of tables, and figures with what was wanted beside what was measured.

export const round = (value, digits = 0) => value.toFixed(digits);

/** `processes` names the columns of CPU per call. */
export const cells = ({ rate, p50, p99, cpu, foreign }, processes) => [
  Math.round(rate).toLocaleString('en'),
  round(p50, 2),
  round(p99, 2),
  ...processes.map((name) => round(cpu[name], 1)),
  `${round(foreign * 100)} %`,
];

export function figure(name, measured, relation, wanted, unit = '') {
  const isMet = relation === '≥' ? measured >= wanted : measured <= wanted;
  const digits = wanted < 10 && !Number.isInteger(measured) ? 2 : 0;
  return {
    name,
    measured: `${round(measured, digits)} ${unit}`.trim(),
    wanted: `${relation} ${wanted} ${unit}`.trim(),
    isMet,
  };
}
