import { memberOf } from "./MemberName.ts"
import * as UrlEncoded from "./UrlEncoded.ts"

/** Finds a query parameter that an upstream may read instead of a body member, as LiteLLM does with `model`. */
export const decidingParameter = (target: string, members: ReadonlySet<string>): string | undefined => {
  const question = target.indexOf("?")
  if (question === -1) return undefined
  for (const { name } of UrlEncoded.pairs(target.slice(question + 1))) {
    const member = memberOf(UrlEncoded.decoded(name))
    if (members.has(member)) return member
  }
  return undefined
}
