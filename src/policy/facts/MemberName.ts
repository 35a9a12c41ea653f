/** Lenient parsers take `model[]` and `[model]` for `model`. */
export const memberOf = (name: string): string => (/^[\s[?]*([^[\]]*)/.exec(name)?.[1] ?? "").trim().toLowerCase()
