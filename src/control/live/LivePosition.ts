import { type Topic, topics } from "../../live/Topics.ts"

/** The numbers of the latest batches that a listener has received, by topic. */
export type LivePosition = ReadonlyMap<Topic, number>

/** Each topic has a letter, so that the id of an event stays short. */
const letters: Readonly<Record<Topic, string>> = {
  requests: "r",
  limits: "l",
  configuration: "c",
  tasks: "t",
  dead_letters: "d",
  queues: "q",
  workers: "w"
}

/** For example `r3k9s0b1x2.c3k9s0b1x3`. */
export const encode = (position: LivePosition): string =>
  topics
    .flatMap((topic) => {
      const number = position.get(topic)
      return number === undefined ? [] : [`${letters[topic]}${number.toString(36)}`]
    })
    .join(".")

export const maxLength = 128

/** Returns `undefined` for a text that is no position. Topics that only a newer version knows are left out. */
export const decode = (text: string): LivePosition | undefined => {
  if (text.length > maxLength) return undefined
  const parts = text.split(".")
  if (!parts.every((part) => /^[a-z][0-9a-z]{1,11}$/.test(part))) return undefined
  return new Map(
    topics.flatMap((topic) => {
      const part = parts.find((part) => part.startsWith(letters[topic]))
      return part === undefined ? [] : [[topic, Number.parseInt(part.slice(1), 36)] as const]
    })
  )
}
