/** Keeps only characters that need no escaping in metric labels, and at most 128 of them. */
export const of = (name: string): string => name.replace(/[^A-Za-z0-9\-_.]/g, "").slice(0, 128)
