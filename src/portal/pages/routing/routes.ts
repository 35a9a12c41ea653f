import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/routes",
  validateSearch: textSearch("do"),
  component: lazyRouteComponent(() => import("./RoutesPage.tsx"))
})

export const routingRoutes = [list] as const
