import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/configuration",
  validateSearch: textSearch("tab", "section", "keys"),
  component: lazyRouteComponent(() => import("./ConfigurationPage.tsx"))
})

export const configurationRoutes = [list] as const
