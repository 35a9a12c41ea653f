/**
 * Whether a topic exchange routes a message with this routing key by a binding of that pattern: words are what dots
 * separate, `*` is exactly one word, `#` any number of them. In time proportional to the product of their lengths.
 */
export const matches = (pattern: string, routingKey: string): boolean => {
  const words = split(routingKey)
  // reachable[n]: the part of the pattern that was read so far can have read n words
  let reachable = [true, ...words.map(() => false)]
  for (const part of split(pattern)) {
    if (part === "#") {
      const first = reachable.indexOf(true)
      reachable = reachable.map((_, at) => first !== -1 && at >= first)
    } else {
      reachable = reachable.map(
        (_, at) => at > 0 && reachable[at - 1] === true && (part === "*" || part === words[at - 1])
      )
    }
  }
  return reachable[words.length] === true
}

/** The broker takes the empty key for no word at all. */
const split = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.split("."))
