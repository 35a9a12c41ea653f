import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"
import { filterNames } from "../../shared/usage/fields.ts"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/usage",
  validateSearch: textSearch(
    ...filterNames,
    "tab",
    "group",
    "split",
    "measure",
    "compare",
    "interval",
    "sort_order",
    "kind"
  ),
  component: laterPage(() => import("./UsagePage.tsx"))
})

export const usageRoutes = [list] as const
