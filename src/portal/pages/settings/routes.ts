import { createRoute } from "@tanstack/react-router"
import { textSearch } from "../../address/search.ts"
import { laterPage } from "../../app/fallbacks/laterPage.ts"
import { operatorLayout } from "../../app/layouts.tsx"

const list = createRoute({
  getParentRoute: () => operatorLayout,
  path: "/settings",
  validateSearch: textSearch(),
  component: laterPage(() => import("./SettingsPage.tsx"))
})

export const settingsRoutes = [list] as const
