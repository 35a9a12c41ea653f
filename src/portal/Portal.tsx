import { lazy, Suspense, useEffect } from "react"
import { expectSession, readSession, useSession, wasSignedIn } from "./api/session.ts"
import styles from "./Portal.module.css"

/** The application is a file of its own, so that the sign-in page loads without it. */
const loadApp = async () => {
  const app = await import("./App.tsx")
  // a page that cannot be loaded says so in the frame
  await app.loadPage().catch(() => {})
  return app
}
const App = lazy(loadApp)
const SignIn = lazy(() => import("./sign-in/SignIn.tsx"))

// a browser with a session loads the application while it asks who is signed in
if (wasSignedIn()) void loadApp()

export const Portal = () => {
  const session = useSession()
  useEffect(() => {
    if (session.state === "signed-in") expectSession(true)
    if (session.state === "signed-out") expectSession(false)
  }, [session.state])
  if (session.state === "unknown") return <Waiting />
  if (session.state === "unreachable") return <Unreachable message={session.message} />
  return (
    <Suspense fallback={<Waiting />}>
      {session.state === "signed-in" ? <App who={session.who} /> : <SignIn ended={session.ended} />}
    </Suspense>
  )
}

/** Says something only once it lasts: most waits are over before a person has read a word. */
const Waiting = () => (
  <output className={styles.waiting} aria-live="polite">
    Loading…
  </output>
)

const Unreachable = ({ message }: { readonly message: string }) => (
  <main className={styles.unreachable}>
    <h1>The server does not answer</h1>
    <p>{message}</p>
    <button type="button" onClick={() => void readSession()}>
      Try again
    </button>
  </main>
)
