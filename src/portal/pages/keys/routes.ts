import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/keys",
  validateSearch: textSearch("q", "state", "tag", "team_id", "project_id", "near_limit", "sort_by", "sort_order"),
  component: laterPage(() => import("./KeysPage.tsx"))
})

const wizard = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/keys/new",
  validateSearch: textSearch("project_id", "step"),
  component: laterPage(() => import("./wizard/NewKeyPage.tsx"))
})

const changes = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/keys/changes",
  validateSearch: textSearch(),
  component: laterPage(() => import("./changes/BulkChangesPage.tsx"))
})

const change = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/keys/changes/$id",
  validateSearch: textSearch(),
  component: laterPage(() => import("./changes/BulkChangePage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/keys/$id",
  validateSearch: textSearch("tab"),
  component: laterPage(() => import("./page/KeyPage.tsx"))
})

export const keysRoutes = [list, wizard, changes, change, one] as const
