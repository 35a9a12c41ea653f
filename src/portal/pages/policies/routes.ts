import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/policies",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./PoliciesPage.tsx"))
})

export const policiesRoutes = [list] as const
