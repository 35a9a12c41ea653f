import { useEffect } from "react"
import { laterFile, useLaterFile } from "./api/laterFile.ts"
import { reloadIfAnswered } from "./api/reload.ts"
import { expectSession, personOf, readSession, useSession, wasSignedIn } from "./api/session.ts"
import styles from "./Portal.module.css"

/** The application is a file of its own, so that the sign-in page loads without it. */
const appFile = laterFile(async () => {
  const app = await import("./App.tsx")
  // a page that cannot be loaded says so in the frame
  await app.loadPage().catch(() => {})
  return app
})
const signInFile = laterFile(() => import("./sign-in/SignIn.tsx"))

// a browser with a session loads the application while it asks who is signed in
if (wasSignedIn()) void appFile.load().catch(() => {})

const retryMs = 5_000

export const Portal = () => {
  const session = useSession()
  const app = useLaterFile(appFile, session.state === "signed-in")
  const signIn = useLaterFile(signInFile, session.state === "signed-out")
  useEffect(() => {
    if (session.state === "signed-in") expectSession(true)
    if (session.state === "signed-out") expectSession(false)
  }, [session.state])
  useEffect(() => {
    if (session.state !== "unreachable") return
    const timer = window.setTimeout(() => void readSession(), retryMs)
    return () => window.clearTimeout(timer)
  }, [session])
  if (session.state === "unreachable")
    return (
      <Unreachable
        title="The server does not answer"
        message={`${session.message} The page asks again every ${retryMs / 1_000} seconds.`}
        onRetry={() => void readSession()}
      />
    )
  if ((session.state === "signed-in" ? app : signIn).isMissing === true)
    return (
      <Unreachable
        title="A part of the portal did not arrive"
        message="The connection was lost, or there is a newer version."
        onRetry={() => void reloadIfAnswered()}
      />
    )
  if (session.state === "signed-in" && app.content !== undefined)
    return <app.content.default key={personOf(session.who)} who={session.who} />
  if (session.state === "signed-out" && signIn.content !== undefined)
    return <signIn.content.default ended={session.ended} />
  return <Waiting />
}

/** Says something only once it lasts: most waits are over before a person has read a word. */
const Waiting = () => (
  <output className={styles.waiting} aria-live="polite">
    Loading…
  </output>
)

interface UnreachableProps {
  readonly title: string
  readonly message: string
  readonly onRetry: () => void
}

const Unreachable = ({ message, onRetry, title }: UnreachableProps) => (
  <main className={styles.unreachable}>
    <h1>{title}</h1>
    <p>{message}</p>
    <button type="button" onClick={onRetry}>
      Try again
    </button>
  </main>
)
