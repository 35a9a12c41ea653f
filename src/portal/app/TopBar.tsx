import { ActionIcon, Button, Kbd, Menu } from "@mantine/core"
import { notifications } from "@mantine/notifications"
import { spotlight } from "@mantine/spotlight"
import { IconRefresh, IconSearch, IconUser } from "@tabler/icons-react"
import { useQueryClient } from "@tanstack/react-query"
import { failureOf } from "../api/failure.ts"
import { installation } from "../api/installation.ts"
import { type SignedIn, signOut } from "../api/session.ts"
import { readAgain } from "../shared/change/readAgain.ts"
import { ForeignText } from "../shared/foreign/ForeignText.tsx"
import { When } from "../shared/words/When.tsx"
import { SchemeItem } from "../theme/Scheme.tsx"
import { LiveIndicator } from "./LiveIndicator.tsx"
import { RangeControl } from "./RangeControl.tsx"
import { showKeys } from "./Shortcuts.tsx"
import styles from "./TopBar.module.css"

const isApple = /Mac|iPhone|iPad/.test(navigator.platform)

export const TopBar = ({ who }: { readonly who: SignedIn }) => (
  <header className={styles.bar}>
    <RangeControl />
    <span className={styles.space} />
    {installation.environment !== null && <span className={styles.environment}>{installation.environment}</span>}
    <LiveIndicator />
    <Button
      className={styles.search}
      variant="default"
      leftSection={<IconSearch size={14} />}
      rightSection={<Kbd size="xs">{isApple ? "⌘K" : "Ctrl K"}</Kbd>}
      onClick={() => spotlight.open()}
    >
      Find
    </Button>
    <ReadAgain />
    <UserMenu who={who} />
  </header>
)

/** A failed sign-out is told, because a person who leaves a browser that others use must know that the session goes on. */
const leave = () => {
  signOut().catch((cause: unknown) => {
    const { message, status } = failureOf(cause)
    // without a session, there is nothing to end
    if (status !== 401) notifications.show({ message: `You are still signed in. ${message}`, color: "red" })
  })
}

/** On a phone, the menu of the person has the same. */
const ReadAgain = () => {
  const queries = useQueryClient()
  return (
    <ActionIcon
      className={styles.again}
      variant="default"
      size={30}
      aria-label="Read the page again"
      title="Read the page again (r)"
      onClick={() => void readAgain(queries)}
    >
      <IconRefresh size={16} />
    </ActionIcon>
  )
}

export const UserMenu = ({ who }: { readonly who: SignedIn }) => {
  const queries = useQueryClient()
  return (
    <Menu position="bottom-end" width={280} withinPortal={false}>
      <Menu.Target>
        <ActionIcon variant="default" size={30} aria-label={`Signed in as ${who.name}`}>
          <IconUser size={16} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <div className={styles.who}>
          <strong>
            <ForeignText>{who.name}</ForeignText>
          </strong>
          {who.kind === "operator_token" && (
            <span>{who.scopes.includes("*") ? "all scopes" : who.scopes.join(", ")}</span>
          )}
          <span>
            session ends <When at={who.expires_at} /> unless it is used
          </span>
        </div>
        <Menu.Divider />
        <SchemeItem />
        <Menu.Item rightSection={<Kbd size="xs">r</Kbd>} onClick={() => void readAgain(queries)}>
          Read the page again
        </Menu.Item>
        <Menu.Item rightSection={<Kbd size="xs">?</Kbd>} onClick={showKeys}>
          Keys of the keyboard
        </Menu.Item>
        {who.kind === "operator_token" && (
          <Menu.Item component="a" href="/admin-ui/docs" target="_blank">
            API documentation
          </Menu.Item>
        )}
        <Menu.Item onClick={leave}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  )
}
