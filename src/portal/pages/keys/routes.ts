import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/keys",
  validateSearch: textSearch("q", "state", "tag", "project_id", "near_limit", "sort_by"),
  component: lazyRouteComponent(() => import("./KeysPage.tsx"))
})

export const keysRoutes = [list] as const
