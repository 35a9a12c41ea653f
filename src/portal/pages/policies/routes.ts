import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const layers = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/policies",
  validateSearch: textSearch("tab", "kind", "scope", "do", "key_id", "project_id", "team_id", "route", "model"),
  component: laterPage(() => import("./PoliciesPage.tsx"))
})

const simulator = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/policies/simulate",
  validateSearch: textSearch("key_id", "path", "model", "kind", "scope"),
  component: laterPage(() => import("./simulate/SimulatePage.tsx"))
})

export const policiesRoutes = [layers, simulator] as const
