import * as JsonMembers from "../../policy/facts/JsonMembers.ts"

/** Returns the number by which a client sees that an event of OpenAI's responses is missing; `undefined` without one. */
export const numberOf = (data: string): number | undefined => {
  const found = memberOf(data)
  if (found === undefined) return undefined
  const number = Number(data.slice(found.valueStart, found.end))
  return Number.isSafeInteger(number) ? number : undefined
}

/** Replaces the number of an event that has one. */
export const withNumber = (data: string, number: number): string => {
  const found = memberOf(data)
  return found === undefined ? data : data.slice(0, found.valueStart) + number + data.slice(found.end)
}

const memberOf = (data: string) =>
  data.includes(`"${member}"`) ? JsonMembers.topLevel(data).find(({ key }) => key === member) : undefined

const member = "sequence_number"
