export type FieldServer = { readonly name: string; readonly package: string; readonly version: string };

/** Real servers from the npm registry, in the order of docs/FIELD.md. */
export const servers: readonly FieldServer[];
