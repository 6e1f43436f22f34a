/** The members of an object, or the items of an array by their index, each as its text. */
export function membersOf(text: string): Record<string, string>;
