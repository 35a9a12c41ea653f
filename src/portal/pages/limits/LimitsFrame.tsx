import { Button, TextInput } from "@mantine/core"
import { IconFilter } from "@tabler/icons-react"
import { Link } from "@tanstack/react-router"
import type { ReactNode } from "react"
import { useTextSearch } from "../../address/search.ts"
import { useTyped } from "../../address/useTyped.ts"
import { useAllowed } from "../../api/session.ts"
import { PageHeader } from "../../shared/page/PageHeader.tsx"
import { DetailDrawer } from "../../shared/table/DetailDrawer.tsx"
import { CopyAs } from "../../shared/words/CopyAs.tsx"
import { OwnerLimits } from "./key/OwnerLimits.tsx"
import { RaiseLimit } from "./raise/RaiseLimit.tsx"
import styles from "./state/Limits.module.css"
import { keyOf } from "./state/limitStates.ts"

const views = [
  { path: "/limits", label: "Now" },
  { path: "/limits/budgets", label: "Budgets" },
  { path: "/limits/requests", label: "Asked for" }
] as const

/**
 * The frame of all pages of limits: the request of each as a command, their titles, the drawer of a key, and the form that
 * raises a limit.
 */
export const LimitsFrame = ({ address, children }: { readonly address: string; readonly children: ReactNode }) => {
  const { change } = useTextSearch()
  const mayRaise = useAllowed("policies:update")
  return (
    <>
      <PageHeader
        title="Limits"
        lead="How far limits and budgets are used now, and when they end."
        actions={
          <>
            <CopyAs address={address} />
            {mayRaise && <Button onClick={() => change({ do: "raise" })}>Raise a limit</Button>}
          </>
        }
      />
      <nav className={styles.tabs} aria-label="Views of limits">
        {views.map(({ label, path }) => (
          <Link key={path} to={path} search={true} activeOptions={{ exact: true, includeSearch: false }}>
            {label}
          </Link>
        ))}
      </nav>
      {children}
      <DetailDrawer title={(id) => (keyOf(id) === undefined ? "Shared limits" : "Limits of a key")}>
        {(id) => <OwnerLimits id={id} />}
      </DetailDrawer>
      {mayRaise && <RaiseLimit />}
    </>
  )
}

/** Finds a key or layer among those that were read. */
export const NameFilter = () => {
  const { change, text } = useTextSearch()
  const { type, typed } = useTyped(text("q") ?? "", (q) => change({ q }))
  return (
    <TextInput
      aria-label="Name of a key or layer"
      placeholder="Name of a key or layer  /"
      data-filter="true"
      leftSection={<IconFilter size={13} />}
      value={typed}
      onChange={({ currentTarget }) => type(currentTarget.value)}
      w={240}
    />
  )
}
