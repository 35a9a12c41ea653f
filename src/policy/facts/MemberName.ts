/**
 * The member that a field of a form or a parameter of a query may be taken for. Readers differ: some make a list of
 * `model[]`, drop the brackets of `[model]` or a leading `?`, trim, or do not mind the case.
 */
export const memberOf = (name: string): string => (/^[\s[?]*([^[\]]*)/.exec(name)?.[1] ?? "").trim().toLowerCase()
