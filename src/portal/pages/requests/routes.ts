import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"
import { filterNames } from "../../shared/usage/fields.ts"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/requests",
  validateSearch: textSearch(...filterNames, "sort_by", "sort_order", "decision"),
  component: laterPage(() => import("./RequestsPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/requests/$id",
  validateSearch: textSearch("decision"),
  component: laterPage(() => import("./RequestPage.tsx"))
})

export const requestsRoutes = [list, one] as const
