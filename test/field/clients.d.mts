/** Without a version: the one that this project is built with. */
export type FieldClient = { readonly name: string; readonly package: string; readonly version?: string };

/** Real clients from the npm registry, in the order of docs/FIELD.md. */
export const clients: readonly FieldClient[];
