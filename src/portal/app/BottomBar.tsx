import { Drawer, UnstyledButton } from "@mantine/core"
import { spotlight } from "@mantine/spotlight"
import { IconDots, IconSearch } from "@tabler/icons-react"
import { Link, useLocation } from "@tanstack/react-router"
import { useState } from "react"
import styles from "./BottomBar.module.css"
import { itemAt, type MenuGroup } from "./menu.ts"

/** What a person on call needs within reach of a thumb. */
const within = ["/", "/tasks", "/dead-letters"]

const exactly = { exact: true, includeSearch: false } as const

/** The menu of narrow screens. */
export const BottomBar = ({ groups }: { readonly groups: ReadonlyArray<MenuGroup> }) => {
  const [isOpen, setOpen] = useState(false)
  const { pathname } = useLocation()
  const current = itemAt(pathname)?.path
  const items = groups.flatMap((group) => group.items)
  return (
    <nav className={styles.bar} aria-label="Main pages">
      {items
        .filter(({ path }) => within.includes(path))
        .map(({ icon: Icon, label, path }) => (
          <Link
            key={path}
            to={path}
            className={styles.item}
            activeOptions={exactly}
            aria-current={current === path ? "page" : undefined}
          >
            <Icon size={20} stroke={1.6} aria-hidden={true} />
            {label}
          </Link>
        ))}
      <UnstyledButton className={styles.item} onClick={() => spotlight.open()}>
        <IconSearch size={20} stroke={1.6} aria-hidden={true} />
        Search
      </UnstyledButton>
      <UnstyledButton
        className={styles.item}
        data-current={(current !== undefined && !within.includes(current)) || undefined}
        onClick={() => setOpen(true)}
        aria-haspopup="dialog"
        aria-expanded={isOpen}
      >
        <IconDots size={20} stroke={1.6} aria-hidden={true} />
        More
      </UnstyledButton>
      <Drawer
        opened={isOpen}
        onClose={() => setOpen(false)}
        position="bottom"
        size="75%"
        title="All pages"
        closeButtonProps={{ "aria-label": "Close" }}
      >
        {groups.map((group) => (
          <section key={group.label} className={styles.group} aria-label={group.label}>
            <p>{group.label}</p>
            {group.items.map(({ icon: Icon, label, path }) => (
              <Link
                key={path}
                to={path}
                className={styles.row}
                activeOptions={exactly}
                aria-current={current === path ? "page" : undefined}
                onClick={() => setOpen(false)}
              >
                <Icon size={18} stroke={1.6} aria-hidden={true} />
                {label}
              </Link>
            ))}
          </section>
        ))}
      </Drawer>
    </nav>
  )
}
