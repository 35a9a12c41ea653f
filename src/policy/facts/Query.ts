import { memberOf } from "./MemberName.ts"
import * as UrlEncoded from "./UrlEncoded.ts"

/**
 * What a decision hangs on belongs into the body, which is read. Upstreams may take a parameter of the same name in the
 * query for it, before the body's (LiteLLM does so with `model`): the first of those in a request's target.
 */
export const decidingParameter = (target: string, members: ReadonlySet<string>): string | undefined => {
  const question = target.indexOf("?")
  if (question === -1) return undefined
  for (const { name } of UrlEncoded.pairs(target.slice(question + 1))) {
    const member = memberOf(UrlEncoded.decoded(name))
    if (members.has(member)) return member
  }
  return undefined
}
