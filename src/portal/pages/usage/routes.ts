import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/usage",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./UsagePage.tsx"))
})

export const usageRoutes = [list] as const
