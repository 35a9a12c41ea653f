import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/services",
  validateSearch: textSearch("q", "state", "do"),
  component: lazyRouteComponent(() => import("./ServicesPage.tsx"))
})

const one = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/services/$name",
  validateSearch: textSearch("tab", "do"),
  component: lazyRouteComponent(() => import("./ServicePage.tsx"))
})

export const servicesRoutes = [list, one] as const
