import { Link, Outlet, useNavigate } from "@tanstack/react-router"
import { useEffect } from "react"
import { installation } from "../api/installation.ts"
import { useSession } from "../api/session.ts"
import styles from "./HolderShell.module.css"
import { UserMenu } from "./TopBar.tsx"

const pages = [
  { to: "/my", label: "Home" },
  { to: "/my/use", label: "Use it" },
  { to: "/my/models", label: "Models" },
  { to: "/my/requests", label: "Requests" },
  { to: "/my/guardrails", label: "Guardrails" },
  { to: "/my/key", label: "Key" }
] as const

/** The pages of whoever holds a key: few words, and nothing of other keys. */
export const HolderShell = () => {
  const session = useSession()
  const navigate = useNavigate()
  const who = session.state === "signed-in" ? session.who : undefined
  const isOperator = who?.kind === "operator_token"
  useEffect(() => {
    if (isOperator) void navigate({ to: "/", replace: true })
  }, [isOperator, navigate])
  if (who === undefined || isOperator) return null
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#page">
        Skip to the page
      </a>
      <header className={styles.top}>
        <strong>{who.name}</strong>
        {installation.environment !== null && <span className={styles.environment}>{installation.environment}</span>}
        <UserMenu who={who} />
      </header>
      <nav className={styles.tabs} aria-label="Pages">
        {pages.map(({ label, to }) => (
          <Link key={to} to={to} activeOptions={{ exact: true, includeSearch: false }} className={styles.tab}>
            {label}
          </Link>
        ))}
      </nav>
      <main id="page" className={styles.page} tabIndex={-1}>
        <Outlet />
      </main>
    </div>
  )
}
