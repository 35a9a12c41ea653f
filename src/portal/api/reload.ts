const answeredWithinMs = 10_000

/**
 * Loads the portal anew if the server answers, and returns whether it does. Without an answer the browser would show an
 * error page of its own, from which nothing leads back.
 */
export const reloadIfAnswered = async (): Promise<boolean> => {
  const isAnswered = await fetch("/admin-ui/readyz", {
    cache: "no-store",
    signal: AbortSignal.timeout(answeredWithinMs)
  }).then(
    () => true,
    () => false
  )
  if (isAnswered) window.location.reload()
  return isAnswered
}
