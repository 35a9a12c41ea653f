import { ActionIcon } from "@mantine/core"
import { useLocalStorage, useMediaQuery } from "@mantine/hooks"
import { IconLayoutSidebarLeftCollapse, IconLayoutSidebarLeftExpand } from "@tabler/icons-react"
import { Link, useLocation } from "@tanstack/react-router"
import { installation } from "../api/installation.ts"
import { SchemeSwitch } from "../theme/Scheme.tsx"
import { itemAt, type MenuGroup } from "./menu.ts"
import styles from "./Rail.module.css"

/** What is current is said by the menu: a link to `/tasks` would also mark itself on `/tasks/board`. */
const exactly = { exact: true, includeSearch: false } as const

/** The menu at the left: icons and words, or icons alone. */
export const Rail = ({ groups }: { readonly groups: ReadonlyArray<MenuGroup> }) => {
  const [isFoldedByPerson, setFolded] = useLocalStorage({ key: "svc-rail-folded", defaultValue: false })
  const isNarrow = useMediaQuery("(max-width: 1199px)", undefined, { getInitialValueInEffect: false })
  const isFolded = isNarrow === true || isFoldedByPerson
  const { pathname } = useLocation()
  const current = itemAt(pathname)
  return (
    <nav className={styles.rail} data-folded={isFolded || undefined} aria-label="Pages">
      <div className={styles.brand}>
        <span className={styles.mark} aria-hidden="true" />
        <span className={styles.words}>
          svc-runtime
          {installation.version !== null && <small>{installation.version}</small>}
        </span>
      </div>
      <div className={styles.groups}>
        {groups.map((group) => (
          <div key={group.label}>
            <p className={styles.label} aria-hidden="true">
              {group.label}
            </p>
            <ul aria-label={group.label}>
              {group.items.map(({ icon: Icon, label, letter, path }) => (
                <li key={path}>
                  <Link
                    to={path}
                    className={styles.link}
                    activeOptions={exactly}
                    aria-current={current?.path === path ? "page" : undefined}
                    aria-label={label}
                    // twenty tooltips of the library would take as long as the page
                    title={isFolded ? `${label} · g ${letter}` : `g ${letter}`}
                  >
                    <Icon size={17} stroke={1.6} aria-hidden={true} />
                    <span className={styles.words}>{label}</span>
                  </Link>
                </li>
              ))}
            </ul>
          </div>
        ))}
      </div>
      <div className={styles.foot}>
        <SchemeSwitch />
        {isNarrow !== true && (
          <ActionIcon
            variant="subtle"
            color="gray"
            onClick={() => setFolded(!isFolded)}
            title={isFolded ? "Show the words" : "Show icons alone"}
            aria-label={isFolded ? "Show the words of the menu" : "Fold the menu"}
          >
            {isFolded ? <IconLayoutSidebarLeftExpand size={17} /> : <IconLayoutSidebarLeftCollapse size={17} />}
          </ActionIcon>
        )}
      </div>
    </nav>
  )
}
