import { createRoute, lazyRouteComponent } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/settings",
  validateSearch: textSearch(),
  component: lazyRouteComponent(() => import("./SettingsPage.tsx"))
})

export const settingsRoutes = [list] as const
