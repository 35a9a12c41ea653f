/**
 * Somebody's name as the value of a metric's label: of the characters that no monitor escapes or reads anything into,
 * and of bounded length.
 */
export const of = (name: string): string => name.replace(/[^A-Za-z0-9\-_.]/g, "").slice(0, 128)
