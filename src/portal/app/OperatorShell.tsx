import { notifications } from "@mantine/notifications"
import { Outlet, useMatches, useNavigate } from "@tanstack/react-router"
import { useCallback, useEffect } from "react"
import { FollowAddress } from "../address/FollowedAddress.tsx"
import { useHeldTime } from "../address/shownTime.ts"
import { installation } from "../api/installation.ts"
import { useIsPaused } from "../api/live.ts"
import { useSession } from "../api/session.ts"
import { useReconnected } from "../api/useReconnected.ts"
import { MayOpen } from "../shared/links/MayOpen.ts"
import { BottomBar } from "./BottomBar.tsx"
import { NoTasks, NotFound } from "./fallbacks/Fallbacks.tsx"
import { Guarded } from "./Guarded.tsx"
import { LostNote } from "./LiveIndicator.tsx"
import { guardsOf, itemAt, menuFor, showsPage } from "./menu.ts"
import { Palette } from "./Palette.tsx"
import { Rail } from "./Rail.tsx"
import styles from "./Shell.module.css"
import { Shortcuts } from "./Shortcuts.tsx"
import { TopBar } from "./TopBar.tsx"

/** The frame around the page of an operator, and around the note that there is no page at an address. */
export const OperatorShell = ({ isUnknown = false }: { readonly isUnknown?: boolean }) => {
  const session = useSession()
  // The location is ahead of the page that the outlet shows, which must not ask what the token may not read.
  const pathname = useMatches({ select: (matches) => matches.at(-1)?.pathname ?? "/" })
  const navigate = useNavigate()
  const who = session.state === "signed-in" ? session.who : undefined
  const groups = menuFor(who?.scopes ?? [])
  const first = groups[0]?.items[0]?.path
  const isHolder = who?.kind === "gateway_key"
  // a token that cannot see the home page begins at the first page that it can see
  const instead = isHolder
    ? "/my"
    : !isUnknown && pathname === "/" && first !== undefined && first !== "/"
      ? first
      : undefined
  useEffect(() => {
    if (instead !== undefined) void navigate({ to: instead, replace: true })
  }, [instead, navigate])
  useHeldTime(useIsPaused())
  useReconnected(() => notifications.show({ message: "The server is back. What was missed is shown now." }))
  const page = isUnknown ? undefined : itemAt(pathname)
  const scopes = who?.scopes
  const mayOpen = useCallback((path: string) => scopes !== undefined && showsPage(scopes, path), [scopes])
  if (who === undefined || instead !== undefined) return null
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#page">
        Skip to the page
      </a>
      <Rail groups={groups} />
      <TopBar who={who} />
      <main id="page" className={styles.page} tabIndex={-1}>
        <LostNote />
        <FollowAddress>
          <MayOpen value={mayOpen}>
            {page === undefined ? (
              <NotFound />
            ) : (
              <Guarded guards={guardsOf(page, pathname)}>
                {page.needsTasks === true && !installation.tasks ? <NoTasks title={page.label} /> : <Outlet />}
              </Guarded>
            )}
          </MayOpen>
        </FollowAddress>
      </main>
      <BottomBar groups={groups} />
      <Palette groups={groups} />
      <Shortcuts pages={groups.flatMap(({ items }) => items)} />
    </div>
  )
}
