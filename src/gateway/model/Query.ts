import { memberOf } from "./MemberName.ts"

/**
 * What a decision hangs on belongs into the body, which is read. Upstreams may take a parameter of the same name in the
 * query for it, before the body's (LiteLLM does so with `model`): the first of those in a request's target.
 */
export const deciding = (target: string, members: ReadonlySet<string>): string | undefined => {
  const question = target.indexOf("?")
  if (question === -1) return undefined
  // some readers part at `;` too
  const parameters = new URLSearchParams(target.slice(question + 1).replaceAll(";", "&"))
  return Array.from(parameters.keys(), memberOf).find((name) => members.has(name))
}
