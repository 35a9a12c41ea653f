/** Restricts a name to characters that need no escaping in metric labels, and to 128 characters. */
export const of = (name: string): string => name.replace(/[^A-Za-z0-9\-_.]/g, "").slice(0, 128)
