/** `*` stands for one word, `#` for any number of words. The time is proportional to the product of the lengths. */
export const matches = (pattern: string, routingKey: string): boolean => {
  const words = split(routingKey)
  // `reachable[n]` says whether the parts of the pattern so far match the first n words.
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

/** RabbitMQ treats the empty routing key as zero words. */
const split = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.split("."))
