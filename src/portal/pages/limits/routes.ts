import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/limits",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./LimitsPage.tsx"))
})

export const limitsRoutes = [list] as const
