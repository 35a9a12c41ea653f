/** Some form parsers read `model[]` and `[model]` as `model`. */
export const memberOf = (name: string): string => (/^[\s[?]*([^[\]]*)/.exec(name)?.[1] ?? "").trim().toLowerCase()
