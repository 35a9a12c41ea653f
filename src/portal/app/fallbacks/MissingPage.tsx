import { Button } from "@mantine/core"
import { useEffect, useState } from "react"
import { reloadIfAnswered } from "../../api/reload.ts"
import { useRetry } from "../../api/useRetry.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"

const againMs = 3_000
/** A file that is still missing after the portal was loaded anew is not a matter of the connection. */
const onceWithinMs = 60_000
const reloadedAt = "svc-reloaded-at"

const wasJustReloaded = (): boolean => Date.now() - Number(sessionStorage.getItem(reloadedAt) ?? 0) < onceWithinMs

const reload = (): Promise<boolean> => {
  sessionStorage.setItem(reloadedAt, String(Date.now()))
  return reloadIfAnswered()
}

/** Stands in place of a page whose files did not arrive, and loads the portal anew by itself once the server answers. */
export const MissingPage = () => {
  const [isByItself] = useState(() => !wasJustReloaded())
  const [isAway, setAway] = useState(false)
  const { isAsking, retry } = useRetry(async () => setAway(!(await reload())))
  useEffect(() => {
    if (!isByItself) return
    let timer: number | undefined
    const ask = async () => {
      if (await reload()) return
      setAway(true)
      timer = window.setTimeout(ask, againMs)
    }
    void ask()
    return () => window.clearTimeout(timer)
  }, [isByItself])
  return (
    <>
      <PageHeader title="This page did not arrive" />
      <p role="status">
        {isAway
          ? `The server does not answer. ${isByItself ? "The page is loaded as soon as it does." : ""}`
          : "A file of the page is missing. There may be a newer version of the portal."}
      </p>
      <Button variant="default" onClick={retry} aria-busy={isAsking}>
        {isAsking ? "Asking…" : "Load the portal again"}
      </Button>
    </>
  )
}
