import { PageHeader } from "../../shared/page/PageHeader.tsx"

const UsagePage = () => <PageHeader title="Usage" />

export default UsagePage
