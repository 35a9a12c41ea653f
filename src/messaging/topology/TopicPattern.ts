/** Returns whether a routing key matches a topic pattern. The time is proportional to the product of their lengths. */
export const matches = (pattern: string, routingKey: string): boolean => {
  const words = split(routingKey)
  // `reachable[n]` is true if the pattern parts processed so far match the first n words.
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
