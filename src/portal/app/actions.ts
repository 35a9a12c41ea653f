import { allows } from "../api/session.ts"
import { showsPage } from "./menu.ts"

export interface PaletteAction {
  readonly label: string
  /** The page at which it begins, below `/admin-ui`. */
  readonly to: string
  /** One of these does it. The page needs its own. */
  readonly scopes: ReadonlyArray<string>
}

const actions: ReadonlyArray<PaletteAction> = [
  { label: "Create a key", to: "/keys/new", scopes: ["keys:create"] },
  { label: "Rotate the secret of a key: choose the key", to: "/keys", scopes: ["operators:manage"] },
  { label: "See budgets", to: "/limits/budgets", scopes: ["usage:read"] },
  { label: "Try out a policy", to: "/policies/simulate", scopes: ["policies:update"] },
  { label: "Raise a limit until a time", to: "/limits?do=raise", scopes: ["policies:update"] },
  { label: "Register a service", to: "/services?do=create", scopes: ["services:update"] },
  { label: "Add a provider", to: "/upstreams?do=create", scopes: ["providers:update"] },
  { label: "Import services", to: "/studio", scopes: ["services:update"] },
  { label: "Pause or resume a queue", to: "/tasks/board", scopes: ["tasks:operate"] },
  { label: "Replay dead letters", to: "/dead-letters", scopes: ["tasks:operate"] },
  { label: "Take a dead letter back from the archive", to: "/dead-letters?tab=archive", scopes: ["tasks:operate"] },
  { label: "Verify the audit chain", to: "/audit?do=verify", scopes: ["audit:read"] },
  { label: "Check the upstreams", to: "/upstreams?do=check", scopes: ["providers:update"] },
  { label: "Import the price book", to: "/models?do=import", scopes: ["settings:update"] }
]

export const actionsFor = (scopes: ReadonlyArray<string>): ReadonlyArray<PaletteAction> =>
  actions.filter(({ scopes: needed, to }) => allows(scopes, needed) && showsPage(scopes, to))
