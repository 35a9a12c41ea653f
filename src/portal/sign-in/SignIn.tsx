import { type FormEvent, useEffect, useId, useRef, useState } from "react"
import { installation } from "../api/installation.ts"
import { expectSession, signIn } from "../api/session.ts"
import styles from "./SignIn.module.css"

/** Plain elements, because the components of the other pages are four times as large as all that this page loads. */
const SignIn = ({ ended }: { readonly ended: string | undefined }) => {
  const id = useId()
  const input = useRef<HTMLInputElement>(null)
  const [problem, setProblem] = useState("")
  const [isBusy, setBusy] = useState(false)
  const isKeysAlone = installation.holders_only

  useEffect(() => {
    document.title = ["Sign in", installation.environment, "svc-runtime"].filter(Boolean).join(" · ")
  }, [])

  const submit = async (event: FormEvent) => {
    event.preventDefault()
    const token = input.current?.value.trim() ?? ""
    if (token === "") {
      input.current?.focus()
      return setProblem(`Paste ${isKeysAlone ? "" : "an operator token (op_live_…) or "}a gateway key (rk_live_…).`)
    }
    setBusy(true)
    setProblem("")
    try {
      await signIn(token)
    } catch (cause) {
      setProblem(cause instanceof Error ? cause.message : "Signing in failed.")
      setBusy(false)
      input.current?.select()
    }
  }

  return (
    <main className={styles.page}>
      <form className={styles.card} onSubmit={submit} noValidate>
        <p className={styles.brand}>
          svc-runtime
          {installation.environment !== null && <span className={styles.environment}>{installation.environment}</span>}
        </p>
        <h1>Sign in</h1>
        {ended !== undefined && <p className={styles.note}>{ended}</p>}
        <label htmlFor={id}>{isKeysAlone ? "Gateway key" : "Operator token or gateway key"}</label>
        <input
          ref={input}
          id={id}
          name="token"
          type="password"
          autoComplete="off"
          spellCheck={false}
          maxLength={256}
          aria-invalid={problem !== ""}
          aria-describedby={`${id}-problem`}
          // biome-ignore lint/a11y/noAutofocus: the page has this one field
          autoFocus
        />
        <p id={`${id}-problem`} className={styles.problem} role="alert">
          {problem}
        </p>
        <button type="submit" className={styles.primary} disabled={isBusy}>
          {isBusy ? "Signing in…" : "Sign in"}
        </button>
        {installation.oidc && (
          <a
            className={styles.secondary}
            onClick={() => expectSession(true)}
            href={`/admin-ui/session/oidc?return_to=${encodeURIComponent(here())}`}
          >
            Sign in with your organisation
          </a>
        )}
        <p className={styles.hint}>
          {isKeysAlone ? "The key" : "It"} is sent once and not stored in this browser. A cookie takes its place for
          twelve hours.
        </p>
        {!isKeysAlone && (
          <p className={styles.hint}>
            No token? The first start of the program printed one, unless GATEWAY_ADMIN_TOKEN set it. Without a database
            and <code>--data</code>, each start is a first one. With the program's DATABASE_URL,{" "}
            <code>npx svc-runtime operator-token create</code> prints another. Operators make the keys of applications.
          </p>
        )}
      </form>
    </main>
  )
}

const here = () => window.location.pathname + window.location.search

export default SignIn
