import { startTransition, useEffect, useState } from "react"

/** A file that did not arrive. Browsers do not ask again for it before the page is loaded anew. */
export class MissingFile extends Error {}

/** A file of the portal that is loaded once it is needed. */
export interface LaterFile<Content> {
  readonly load: () => Promise<Content>
  /** `undefined` until it is there. */
  readonly content: () => Content | undefined
}

export const laterFile = <Content>(read: () => Promise<Content>): LaterFile<Content> => {
  let content: Content | undefined
  let loading: Promise<Content> | undefined
  const begin = async () => {
    content = await read()
    return content
  }
  return {
    content: () => content,
    load: () => {
      loading ??= begin()
      return loading
    }
  }
}

interface Loading<Content> {
  readonly content?: Content | undefined
  readonly isMissing?: boolean
}

/**
 * Loads the file once it is needed. React's `lazy` shows a part up to 300 ms late, to avoid flicker. Here every
 * placeholder has its final size, so nothing flickers.
 */
export const useLaterFile = <Content>(file: LaterFile<Content>, isNeeded: boolean): Loading<Content> => {
  const [loading, become] = useState<Loading<Content>>(() => ({ content: file.content() }))
  const isWanted = isNeeded && loading.content === undefined
  useEffect(() => {
    if (!isWanted) return
    let isCurrent = true
    file.load().then(
      // a file may be much to draw, such as a chart: what the person does, and answers that arrive, come first
      (content) => isCurrent && startTransition(() => become({ content })),
      () => isCurrent && become({ isMissing: true })
    )
    return () => {
      isCurrent = false
    }
  }, [file, isWanted])
  return loading
}

/**
 * The same for a part of a page, whose boundary says if it does not arrive. It begins once the browser has nothing else
 * to do, because to run a library of charts takes as long as to draw the numbers beside it.
 */
export const useLaterPart = <Content>(file: LaterFile<Content>): Content | undefined => {
  const { content, isMissing } = useLaterFile(file, useIsIdle())
  if (isMissing === true) throw new MissingFile("a file did not arrive")
  return content
}

const longestWaitMs = 1_000

/** Returns true once the browser was idle for the first time, or busy for so long. */
const useIsIdle = (): boolean => {
  const [isIdle, setIdle] = useState(false)
  useEffect(() => {
    // Safari does not tell
    if (!("requestIdleCallback" in window)) return setIdle(true)
    const waiting = requestIdleCallback(() => setIdle(true), { timeout: longestWaitMs })
    return () => cancelIdleCallback(waiting)
  }, [])
  return isIdle
}
