import { codeOf, wordsOf } from "./Failure.ts"
import type { Publishing } from "./Publishing.ts"

/** Which of them the broker means; -1: it does not say. */
export const culpritOf = (sent: ReadonlyArray<Publishing>, why: Error): number => {
  const words = wordsOf(why)
  const size = / message size (\d+) /.exec(words)?.[1]
  return sent.findIndex(({ publication: { content, exchange, properties } }) => {
    if (words.includes(`exchange '${exchange}'`)) return true
    if (size !== undefined) return content.length === Number(size)
    return properties.userId !== undefined && words.includes(`user_id property set to '${properties.userId}'`)
  })
}

export const sharesFate = (publishing: Publishing, culprit: Publishing | undefined, why: Error): boolean =>
  wordsOf(why).includes("exchange '") && publishing.publication.exchange === culprit?.publication.exchange

export const refusalOf = (why: Error): "no_exchange" | "denied" | "invalid" => {
  const code = codeOf(why)
  if (code === 404) return "no_exchange"
  return code === 403 ? "denied" : "invalid"
}
