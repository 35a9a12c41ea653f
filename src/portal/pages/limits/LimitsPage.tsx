import { PageHeader } from "../../shared/page/PageHeader.tsx"

const LimitsPage = () => <PageHeader title="Limits" />

export default LimitsPage
