import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

/** `do=raise` opens the form, for a key and a limit if they are known. */
const search = textSearch("q", "scope", "id", "unit", "do", "key_id", "meter", "state")

const now = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/limits",
  validateSearch: search,
  component: laterPage(() => import("./LimitsPage.tsx"))
})

const budgets = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/limits/budgets",
  validateSearch: search,
  component: laterPage(() => import("./BudgetsPage.tsx"))
})

const asked = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/limits/requests",
  validateSearch: search,
  component: laterPage(() => import("./AskedPage.tsx"))
})

export const limitsRoutes = [now, budgets, asked] as const
