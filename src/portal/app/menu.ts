import type { IconProps } from "@tabler/icons-react"
import {
  IconActivity,
  IconAddressBook,
  IconBuildingWarehouse,
  IconChartBar,
  IconClipboardList,
  IconCoin,
  IconFileSettings,
  IconFolders,
  IconGauge,
  IconHeartbeat,
  IconHome,
  IconKey,
  IconLayoutKanban,
  IconListSearch,
  IconMailX,
  IconPlugConnected,
  IconRoute,
  IconScale,
  IconSettings,
  IconShieldCheck,
  IconStack2
} from "@tabler/icons-react"
import type { ComponentType } from "react"
import { installation } from "../api/installation.ts"
import { allows, scopesOfTasks } from "../api/session.ts"

export interface MenuItem {
  /** Below `/admin-ui`. */
  readonly path: string
  readonly label: string
  readonly icon: ComponentType<IconProps>
  /** One of these scopes shows the page. */
  readonly scopes: ReadonlyArray<string>
  /** There is nothing to see where a process has no tasks. */
  readonly needsTasks?: true
  /** `g` and then this letter goes to the page. */
  readonly letter: string
}

export interface MenuGroup {
  readonly label: string
  readonly items: ReadonlyArray<MenuItem>
}

const usage = ["usage:read"]
const tasks = { scopes: scopesOfTasks, needsTasks: true } as const
const operators = ["operators:manage"]

export const menu = [
  {
    label: "Monitor",
    items: [
      { path: "/", label: "Home", icon: IconHome, scopes: usage, letter: "h" },
      { path: "/requests", label: "Requests", icon: IconActivity, scopes: usage, letter: "r" },
      { path: "/usage", label: "Usage", icon: IconChartBar, scopes: usage, letter: "u" },
      { path: "/limits", label: "Limits", icon: IconGauge, scopes: usage, letter: "l" }
    ]
  },
  {
    label: "Tasks",
    items: [
      { path: "/tasks/board", label: "Board", icon: IconLayoutKanban, ...tasks, letter: "b" },
      { path: "/tasks", label: "Tasks", icon: IconListSearch, ...tasks, letter: "t" },
      { path: "/dead-letters", label: "Dead letters", icon: IconMailX, ...tasks, letter: "d" }
    ]
  },
  {
    label: "Govern",
    items: [
      { path: "/keys", label: "Keys", icon: IconKey, scopes: operators, letter: "k" },
      { path: "/projects", label: "Projects", icon: IconFolders, scopes: usage, letter: "p" },
      { path: "/policies", label: "Policies", icon: IconScale, scopes: ["policies:update"], letter: "y" },
      { path: "/guardrails", label: "Guardrails", icon: IconShieldCheck, scopes: operators, letter: "w" }
    ]
  },
  {
    label: "Upstream",
    items: [
      { path: "/models", label: "Models & prices", icon: IconCoin, scopes: usage, letter: "m" },
      { path: "/routes", label: "Routes", icon: IconRoute, scopes: usage, letter: "o" },
      { path: "/upstreams", label: "Upstreams", icon: IconPlugConnected, scopes: usage, letter: "s" },
      { path: "/services", label: "Services", icon: IconStack2, scopes: usage, letter: "v" },
      { path: "/studio", label: "Studio", icon: IconBuildingWarehouse, scopes: operators, letter: "i" }
    ]
  },
  {
    label: "Administer",
    items: [
      { path: "/audit", label: "Audit", icon: IconClipboardList, scopes: ["audit:read"], letter: "a" },
      { path: "/configuration", label: "Configuration", icon: IconFileSettings, scopes: operators, letter: "c" },
      { path: "/operators", label: "Operators", icon: IconAddressBook, scopes: operators, letter: "n" },
      { path: "/settings", label: "Settings", icon: IconSettings, scopes: operators, letter: "e" },
      { path: "/system", label: "System", icon: IconHeartbeat, scopes: usage, letter: "x" }
    ]
  }
] as const satisfies ReadonlyArray<MenuGroup>

export const menuItems: ReadonlyArray<MenuItem> = menu.flatMap((group): ReadonlyArray<MenuItem> => group.items)

/** The groups that have something which the scopes show. */
export const menuFor = (scopes: ReadonlyArray<string>): ReadonlyArray<MenuGroup> =>
  menu
    .map((group) => ({ label: group.label, items: itemsFor(group.items, scopes) }))
    .filter(({ items }) => items.length > 0)

export const itemsFor = (items: ReadonlyArray<MenuItem>, scopes: ReadonlyArray<string>): ReadonlyArray<MenuItem> =>
  items.filter((item) => allows(scopes, item.scopes))

/** The item that a path belongs to: the longest one that it begins with. */
export const itemAt = (path: string): MenuItem | undefined =>
  menuItems
    .filter((item) => path === item.path || (item.path !== "/" && path.startsWith(`${item.path}/`)))
    .sort((a, b) => b.path.length - a.path.length)[0]

export type Guard = Pick<MenuItem, "label" | "scopes">

/** Pages below an item of the menu that need other scopes: besides those of the item, or in place of them. */
const below: ReadonlyArray<Guard & { readonly path: RegExp; readonly isInPlace?: true }> = [
  // who may make keys need not see those of others
  { path: /^\/keys\/new$/, label: "Create a key", scopes: ["keys:create"], isInPlace: true },
  { path: /^\/projects\/[^/]+$/, label: "Project", scopes: operators },
  { path: /^\/services\/[^/]+$/, label: "Service", scopes: operators }
]

/** Returns what the page of a path needs: one of the scopes of each. */
export const guardsOf = (item: MenuItem, path: string): ReadonlyArray<Guard> => {
  const own = below.find((page) => page.path.test(path))
  if (own === undefined) return [item]
  return own.isInPlace === true ? [own] : [item, own]
}

/** Returns whether there is a page at an address, and the scopes show it. */
export const showsPage = (scopes: ReadonlyArray<string>, address: string): boolean => {
  const [path = address] = address.split("?", 1)
  const page = itemAt(path)
  if (page === undefined || (page.needsTasks === true && !installation.tasks)) return false
  return guardsOf(page, path).every((guard) => allows(scopes, guard.scopes))
}
