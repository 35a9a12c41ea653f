import type { IconProps } from "@tabler/icons-react"
import { IconActivity, IconCoin, IconHome, IconKey, IconRocket, IconShieldCheck } from "@tabler/icons-react"
import { Link, Outlet, useNavigate } from "@tanstack/react-router"
import { type ComponentType, useEffect } from "react"
import { FollowAddress } from "../address/FollowedAddress.tsx"
import { installation } from "../api/installation.ts"
import { useSession } from "../api/session.ts"
import { ForeignText } from "../shared/foreign/ForeignText.tsx"
import { NotFound } from "./fallbacks/Fallbacks.tsx"
import styles from "./HolderShell.module.css"
import { Shortcuts } from "./Shortcuts.tsx"
import { UserMenu } from "./TopBar.tsx"

interface HolderPage {
  readonly to: "/my" | `/my/${"use" | "models" | "requests" | "guardrails" | "key"}`
  readonly label: string
  readonly icon: ComponentType<IconProps>
  /** `g` and then this letter goes to the page, as for operators. */
  readonly letter: string
}

const pages: ReadonlyArray<HolderPage> = [
  { to: "/my", label: "Home", icon: IconHome, letter: "h" },
  { to: "/my/use", label: "Use it", icon: IconRocket, letter: "u" },
  { to: "/my/models", label: "Models", icon: IconCoin, letter: "m" },
  { to: "/my/requests", label: "Requests", icon: IconActivity, letter: "r" },
  { to: "/my/guardrails", label: "Guardrails", icon: IconShieldCheck, letter: "w" },
  { to: "/my/key", label: "Key", icon: IconKey, letter: "k" }
]

/** The pages of whoever holds a key: few words, and nothing of other keys. On narrow screens the menu is at the thumb. */
export const HolderShell = ({ isUnknown = false }: { readonly isUnknown?: boolean }) => {
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
        <span className={styles.mark} aria-hidden="true" />
        <strong className={styles.name}>
          <ForeignText>{who.name}</ForeignText>
        </strong>
        {installation.environment !== null && <span className={styles.environment}>{installation.environment}</span>}
        <UserMenu who={who} />
      </header>
      <nav className={styles.tabs} aria-label="Pages">
        {pages.map(({ icon: Icon, label, letter, to }) => (
          <Link
            key={to}
            to={to}
            activeOptions={{ exact: true, includeSearch: false }}
            className={styles.tab}
            title={`${label} (g ${letter})`}
          >
            <Icon size={17} stroke={1.6} aria-hidden={true} />
            {label}
          </Link>
        ))}
      </nav>
      <main id="page" className={styles.page} tabIndex={-1}>
        <FollowAddress>{isUnknown ? <NotFound home="/my" /> : <Outlet />}</FollowAddress>
      </main>
      <Shortcuts pages={pages.map(({ letter, to }) => ({ path: to, letter }))} isHolder />
    </div>
  )
}
