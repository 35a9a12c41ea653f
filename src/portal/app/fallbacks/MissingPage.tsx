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

const reload = async (): Promise<boolean> => {
  const isReloading = await reloadIfAnswered()
  if (isReloading) sessionStorage.setItem(reloadedAt, String(Date.now()))
  return isReloading
}

/** Stands in place of a page whose files did not arrive, and loads the portal anew by itself once the server answers. */
export const MissingPage = () => {
  const [isByItself] = useState(() => !wasJustReloaded())
  /** `undefined` until the server was asked. */
  const [isAway, setAway] = useState<boolean>()
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
        {isAway === true
          ? `The server does not answer. ${isByItself ? "The page is loaded as soon as it does." : ""}`
          : isByItself
            ? "A file of the page is missing. The portal is loaded again."
            : "A file of the page is missing. There may be a newer version of the portal."}
      </p>
      <Button variant="default" onClick={retry} aria-busy={isAsking}>
        {isAsking ? "Asking…" : "Load the portal again"}
      </Button>
    </>
  )
}
