import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"
import { filterNames } from "../../shared/usage/fields.ts"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/requests",
  validateSearch: textSearch(...filterNames, "sort_by", "sort_order", "decision"),
  component: lazyRouteComponent(() => import("./RequestsPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/requests/$id",
  validateSearch: textSearch("decision"),
  component: lazyRouteComponent(() => import("./RequestPage.tsx"))
})

export const requestsRoutes = [list, one] as const
