import { useEffect, useState } from "react"

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
    try {
      content = await read()
      return content
    } catch (failure) {
      // the next one who needs it asks again
      loading = undefined
      throw failure
    }
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
  readonly failure?: unknown
}

/**
 * Loads the file once it is needed. React's `lazy` would show it 300 ms late, so that pages which wait in many places do
 * not flicker; here what waits has the size of what comes.
 */
export const useLaterFile = <Content>(file: LaterFile<Content>, isNeeded: boolean): Loading<Content> => {
  const [loading, become] = useState<Loading<Content>>(() => ({ content: file.content() }))
  const isWanted = isNeeded && loading.content === undefined
  useEffect(() => {
    if (!isWanted) return
    let isCurrent = true
    file.load().then(
      (content) => isCurrent && become({ content }),
      (failure: unknown) => isCurrent && become({ failure })
    )
    return () => {
      isCurrent = false
    }
  }, [file, isWanted])
  return loading
}

/** The same for a part of a page, whose boundary says if it does not arrive. */
export const useLaterPart = <Content>(file: LaterFile<Content>): Content | undefined => {
  const { content, failure } = useLaterFile(file, true)
  if (failure !== undefined) throw failure
  return content
}
