import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/services",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./ServicesPage.tsx"))
})

export const servicesRoutes = [list] as const
